// Asks for the page again, with the cursor of what it shows: the server answers 304 where nothing is new.
const main = document.querySelector('main');
const live = document.getElementById('live');

function opened() {
  return [...document.querySelectorAll('details[id][open]')].map(each => each.id);
}

function put(text) {
  const open = opened();
  const chosen = [...document.querySelectorAll('main input[id]:checked')].map(each => each.id);
  main.innerHTML = text;  // made by the server, which escapes all that a model wrote; no script in it would run
  open.forEach(id => document.getElementById(id)?.setAttribute('open', ''));
  chosen.forEach(id => { const input = document.getElementById(id); if (input) input.checked = true; });
  readOut();
}

async function look() {
  const answer = await fetch(location.href, {headers: {'If-None-Match': main.dataset.cursor, 'X-Part': 'main'}});
  if (answer.status === 200 && !isBusy()) {
    main.dataset.cursor = answer.headers.get('ETag');
    put(await answer.text());
  } else if (answer.status !== 304 && answer.status !== 200) {
    throw new Error(await answer.text());
  }
}

// whoever fills in a form or marks text would lose it
function isBusy() {
  return main.contains(document.activeElement) && /INPUT|SELECT/.test(document.activeElement.tagName)
    || !getSelection().isCollapsed;
}

async function tick() {
  if (!document.hidden) {
    try {
      await look();
      live.textContent = 'live';
    } catch (error) {
      live.textContent = `no answer: ${error.message}`;
    }
  }
  setTimeout(tick, 1000 * main.dataset.every);
}

if (Number(main.dataset.every) > 0) setTimeout(tick, 1000 * main.dataset.every);
document.addEventListener('visibilitychange', () => { if (!document.hidden && Number(main.dataset.every) > 0) look().catch(() => {}); });
